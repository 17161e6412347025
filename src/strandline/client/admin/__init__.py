"""The admin client, one module for each kind of thing that it administers."""
