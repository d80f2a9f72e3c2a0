"""Tables, figures and pages. They read run folders, never live training."""
