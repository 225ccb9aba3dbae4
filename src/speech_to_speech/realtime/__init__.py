"""The OpenAI Realtime protocol (GA): client events and stage results in, server events and stage requests out."""
