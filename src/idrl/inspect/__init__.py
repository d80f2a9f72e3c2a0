"""A trained agent looked at: acting, explaining, playing."""
