"""What the documentation site shows besides the pages of docs/: made from the package while the site is built."""
