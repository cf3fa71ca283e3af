"""Turn a lab's file into UTF-8 text: inflate it, and repair or convert its encoding."""
