"""Groups of path conditions: how they are found and who belongs to which."""
