"""Options of the JVMs that run Spark for many tests, and for the oracle."""

#: Each JVM lives for many minutes, but most queries run once.  So the second compiler compiles only
#: code that has run 15 times as often as the defaults demand.  The first 150 seconds of processor
#: time become 15 percent less than without the second compiler, and 20 percent less than with the
#: defaults.  One thread collects garbage, since other processes use the processors.
TEST_OPTIONS = (
    "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:Tier4InvocationThreshold=75000"
    " -XX:Tier4MinInvocationThreshold=9000 -XX:Tier4CompileThreshold=225000"
    " -XX:Tier4BackEdgeThreshold=600000"
)
