"""A Django site whose cache and sessions are in a Redis server.

RONDO_ADDR is the server's address, host:port. The site's port is the first line of the
output. POST /cache calls Django's cache API: {"call": "set", "args": ["k", 1]}.
"""

import json
import os
import socketserver
import wsgiref.simple_server

import django
from django.conf import settings
from django.core.cache import cache
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.cache import cache_page

settings.configure(
    ALLOWED_HOSTS=["*"],
    CACHES={
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": f"redis://{os.environ['RONDO_ADDR']}/1",
        }
    },
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="not secret",
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
)

rendered = 0


def visit(request):
    """Counts the session's visits. With ?expire=N the session ends after N seconds."""
    request.session["visits"] = request.session.get("visits", 0) + 1
    if "expire" in request.GET:
        request.session.set_expiry(int(request.GET["expire"]))
    return JsonResponse({"visits": request.session["visits"]})


def login(request):
    request.session.cycle_key()
    return JsonResponse({"visits": request.session.get("visits", 0)})


def logout(request):
    request.session.flush()
    return JsonResponse({})


@cache_page(1)
def page(request):
    global rendered
    rendered += 1
    return HttpResponse(str(rendered))


def call(request):
    asked = json.loads(request.body)
    try:
        result = getattr(cache, asked["call"])(*asked.get("args", ()), **asked.get("named", {}))
    except ValueError as err:
        return JsonResponse({"error": str(err)})
    return JsonResponse({"result": result})


urlpatterns = [
    path("visit", visit),
    path("login", login),
    path("logout", logout),
    path("page", page),
    path("cache", call),
]


class Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True


class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *args):
        pass


django.setup()
server = wsgiref.simple_server.make_server("127.0.0.1", 0, get_wsgi_application(), Server, Quiet)
print(server.server_port, flush=True)
server.serve_forever()
