module sample

go 1.18
