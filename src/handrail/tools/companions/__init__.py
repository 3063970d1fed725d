"""The companions: tools that work on the talk with the person, and on no file. Each is off until it is switched on."""
