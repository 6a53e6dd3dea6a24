module plugin-host/bench/greeter

go 1.24
