"""Plain metrics, whitening and ridge regression."""
