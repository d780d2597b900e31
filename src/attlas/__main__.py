"""`python -m attlas`: the command line."""

from attlas.cli.main import main

if __name__ == "__main__":
    main()
