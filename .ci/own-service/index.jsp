<%@ page session="false" %>hello
