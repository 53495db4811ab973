"""``cczoo train sbd``: the command line of each training, one module each."""
