def make(rows, torch_row): pass
