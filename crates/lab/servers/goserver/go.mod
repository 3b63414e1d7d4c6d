module goserver

go 1.21
