"""Settings of other programs, changed in place: everything else in the file stays as it is, byte for byte."""
