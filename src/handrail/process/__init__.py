"""Commands as processes: started, followed, ended with everything they started."""
