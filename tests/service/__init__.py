"""Tests of the web service, the job queue, HTML pages and email."""
