"""What did happen: watermarks, sequences, and how stores and tables are reconciled."""
