"""Quality of streams over two paths: sessions simulated, and advice from what they taught."""
