"""The systems of the source papers, to compare with: feature maps, classifiers, Algorithm 1."""
