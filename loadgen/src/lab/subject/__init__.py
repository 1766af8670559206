"""The thing under test, and what a run changes of the lab around it.

A server of the lab and a service of the user's own are one file each, behind the interface of
`subject`.
"""
