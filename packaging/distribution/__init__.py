"""The files of a release, made from one binary for each target."""
