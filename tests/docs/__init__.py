"""What the documents say is so: tutorials are run, figures and messages are those of the code and of the benches."""
