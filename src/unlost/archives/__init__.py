"""All traffic to web archives, and archives on this machine: who they are, what they are asked, what comes back.

`registry` knows which archives there are, `opening` has the client for each, `repository` says what all can be asked.
"""
