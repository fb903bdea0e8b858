"""Good manners: how often an archive may be asked, and who has asked it; shared by all processes of a user."""
