"""Groups of path conditions are found here, and connections are assigned to them."""
