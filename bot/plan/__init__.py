"""The parts of handlers and what they return: handler, plan, effect, and how effects are stored."""
