"""Every key, declared once, one module for each part of the system."""
