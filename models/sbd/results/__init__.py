"""What the steps of ``cczoo train sbd`` write and later steps read: a schema for each file."""
