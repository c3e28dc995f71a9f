"""HTTP/1.1 as it stands on the wire: both sides of a recording proxy, with every transfer chunk border kept."""
