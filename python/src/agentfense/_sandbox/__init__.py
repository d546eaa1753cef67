"""What a sandbox needs that neither waits nor talks to a server: the same for both faces."""
