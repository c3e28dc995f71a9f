"""`python -m worldline`: the same as the `worldline` command."""

from worldline.cli.main import main

if __name__ == "__main__":
    main()
