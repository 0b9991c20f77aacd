"""The app's widgets, one a file; how they look is in app.tcss."""
