"""What tests of agents need: a provider server that plays a script. Import the parts by name, this holds none."""
