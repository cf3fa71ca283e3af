"""What handlers are made of and what they return: handler, plan, effect, and how effects are stored."""
