//! What each page shows: HTML made of the answers of a site.
