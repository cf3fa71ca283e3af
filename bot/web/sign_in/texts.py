"""What people read who sign in, or cannot."""

SIGN_IN_OFF = (
    "Sign-in is off here, so only public repositories are shown. The operator of the bot turns it on by setting "
    "GITHUB_CLIENT_ID, GITHUB_CLIENT_SECRET and SESSION_SECRET, and public_url in app.yaml."
)
NO_ADDRESS = (
    "Sign-in does not work at this address. The operator of the bot sets public_url in app.yaml to the https address "
    "of these pages."
)
NOT_BEGUN_HERE = (
    "This sign-in was started in another browser or more than {minutes} minutes ago, or was already used. Sign in "
    "again."
)
DENIED = "GitHub says that the sign-in was cancelled. Nothing has changed."
NOT_ACCEPTED = "GitHub did not accept the sign-in. Sign in again."
GITHUB_AWAY = "GitHub did not answer, so the sign-in could not be completed. Try again in a minute."
NOT_KNOWN = "We could not ask GitHub whether you may read this. Try again in a minute."
NOT_OPERATOR = (
    "Only operators can see this. Neither @{login} (ID {id}) nor a team of theirs is listed below `operators` in "
    "app.yaml."
)
ORIGIN = "This form was not sent from these pages. Open the page again and press the button there."
FORM_EXPIRED = "This form is no longer valid. Open the page again and press the button there."
NOT_A_FORM = "The body must be a form of at most {most} bytes (application/x-www-form-urlencoded)."
