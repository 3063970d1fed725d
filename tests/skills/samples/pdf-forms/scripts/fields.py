print("no fields")
