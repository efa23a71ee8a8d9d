std = "luajit"
read_globals = { "vim" }
globals = { "vim.bo", "vim.wo", "vim.b", "vim.g", "vim.o" }
max_line_length = 120
