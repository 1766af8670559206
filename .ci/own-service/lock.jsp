<%@ page session="false" %><% synchronized (application) { Thread.sleep(10); } %>locked
