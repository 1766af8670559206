<%@ page session="false" %><% Thread.sleep(200); %>waited
