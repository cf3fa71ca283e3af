"""Read XML of any tool, whose input is not trusted, with expat."""
