"""`cczoo lab drive`: a policy sets the windows of live connections over emulated links."""
