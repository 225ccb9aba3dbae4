"""The sockets: HTTP and WebSocket shells around sessions, who may connect, and how much is accepted."""
