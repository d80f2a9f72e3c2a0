# A package, so that its files may be named as those beside it.
