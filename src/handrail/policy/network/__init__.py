"""The network as policy sees it: which host a text names, and which hosts a list opens. Pure: nothing is looked up."""
