"""What programs take and do: tables as data."""
