"""Readers of the XML of .NET's test tools: xunit.net, NUnit and TRX."""
