<%@ page session="false" %><% try (var in = new java.net.URL(System.getenv("DOWNSTREAM_URL")).openStream()) { in.readAllBytes(); } %>called
