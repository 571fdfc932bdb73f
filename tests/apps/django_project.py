#!/usr/bin/env python3
"""The Django project of django_site.py, in one file: settings, models-free views, URLs, manage.

SITE_FOLDER holds its database and uploads, SITE_HOSTS names its hosts.
"""

import os
import pathlib
import sys

import django
from django.conf import settings

FOLDER = pathlib.Path(os.environ["SITE_FOLDER"])

settings.configure(
    SECRET_KEY="of no consequence",
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=os.environ["SITE_HOSTS"].split(","),
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(FOLDER / "site.db"),
                           "OPTIONS": {"timeout": 60}}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
    MIDDLEWARE=[
        "django.middleware.http.ConditionalGetMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "OPTIONS": {
        "loaders": [("django.template.loaders.locmem.Loader", {"registration/login.html": (
            "<form method='post'>{% csrf_token %}{{ form.as_p }}<input type='submit'></form>")})]}}],
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    LOGOUT_REDIRECT_URL="/",
    DATA_UPLOAD_MAX_MEMORY_SIZE=64 << 20,
    USE_TZ=True,
)
django.setup()

from django.contrib.auth import SESSION_KEY, get_user_model, views  # noqa: E402
from django.contrib.auth.decorators import login_required  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.http import (FileResponse, Http404, HttpResponse, HttpResponseForbidden,  # noqa: E402
                         HttpResponseRedirect, StreamingHttpResponse)
from django.middleware.csrf import get_token  # noqa: E402
from django.urls import path  # noqa: E402


def form(request, inside=""):
    return (f"<form method='post'><input name=\"csrfmiddlewaretoken\" value=\"{get_token(request)}\">"
            f"{inside}</form>")


def quiet_user(request):
    """The name of the session's user, read so that Django does not add Vary."""
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    user = SessionStore(key).get(SESSION_KEY) if key else None
    return get_user_model().objects.get(pk=user).username if user else None


def secret(name):
    return f"secret-of-{name}" if name else "nothing"


def home(request):
    response = HttpResponse(f"home of {request.get_host()}, <a href='"
                            f"{request.build_absolute_uri('/feed/')}'>feed</a>")
    response["Cache-Control"] = "public, max-age=60"
    return response


@login_required
def private(request):
    return HttpResponse(f"secret-of-{request.user.username} {form(request)}")


def feed(request):
    """As WordPress: one entity tag for all, no Vary, and no-cache after a login."""
    name = quiet_user(request)
    if request.headers.get("If-None-Match") == '"for-all"':
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(secret(name))
    response["ETag"] = '"for-all"'
    response["Last-Modified"] = "Mon, 02 Mar 2020 10:00:00 GMT"
    if name:
        response["Cache-Control"] = "no-cache, must-revalidate, max-age=0"
    return response


def dated(request):
    """A page with nothing that speaks of caching but its date."""
    response = HttpResponse(secret(quiet_user(request)))
    response["Last-Modified"] = "Mon, 02 Mar 2020 10:00:00 GMT"
    return response


def varies(request):
    response = HttpResponse(secret(request.user.username))
    response["Cache-Control"] = "max-age=60"
    return response


def own(request):
    response = HttpResponse(secret(quiet_user(request)))
    response["Cache-Control"] = "private, max-age=60"
    return response


def upload(request):
    if request.method != "POST":
        return HttpResponse(form(request, "<input type='file' name='file'>"))
    if not request.user.is_authenticated:
        return HttpResponseForbidden()
    if "file" not in request.FILES:
        return HttpResponse("no file", status=400)
    folder = FOLDER / "uploads" / request.user.username
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "file", "wb") as copy:
        for chunk in request.FILES["file"].chunks():
            copy.write(chunk)
    return HttpResponseRedirect(f"/files/{request.user.username}")


@login_required
def files(request, owner):
    if request.user.username != owner:
        return HttpResponseForbidden()
    try:
        return FileResponse(open(FOLDER / "uploads" / owner / "file", "rb"))
    except FileNotFoundError as error:
        raise Http404 from error


def notes(request):
    kept = FOLDER / "notes"
    if request.method == "POST":
        with open(kept, "a", encoding="utf-8") as notes_file:
            notes_file.write(request.POST["note"] + "\n")
        return HttpResponseRedirect("/notes/")
    response = HttpResponse((kept.read_text() if kept.exists() else "") + form(request))
    response["Cache-Control"] = "max-age=3600"
    return response


def article(request, number):
    """For readers and users, as Django's own decorators have it: Vary comes with the session."""
    reader = f"hello {request.user.username}, " if request.user.is_authenticated else ""
    return HttpResponse(f"{reader}article {number}", headers={"Cache-Control": "max-age=300"})


def style(request):
    return HttpResponse("body { color: black }", content_type="text/css",
                        headers={"Cache-Control": "public, max-age=31536000, immutable"})


def stream(request):
    return StreamingHttpResponse(f"line {number}\n" for number in range(1000))


def version(request):
    return HttpResponse(django.get_version())


urlpatterns = [
    path("", home), path("private/", private), path("feed/", feed), path("dated/", dated),
    path("varies/", varies), path("own/", own), path("upload/", upload), path("files/<str:owner>", files),
    path("articles/<int:number>/", article), path("static/site.css", style), path("notes/", notes), path("stream/", stream), path("version/", version),
    path("accounts/login/", views.LoginView.as_view()),
    path("accounts/logout/", views.LogoutView.as_view()),
]

if __name__ == "__main__":
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)
