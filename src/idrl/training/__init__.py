"""Training loops. They know agents, the replay and the environment protocol, not the disk."""
