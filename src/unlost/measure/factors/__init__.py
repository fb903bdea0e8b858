"""What has to do with whether a resource came back: twelve factors, over several recoveries."""
